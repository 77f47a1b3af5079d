"""Models: registered from what jobs or people wrote, kept apart from it, and how far each is used."""
