"""Models: registered from files of jobs or people, kept apart from them, and the stage of each."""
