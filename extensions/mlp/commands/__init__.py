"""Actions of the verbs, the same for the magic and the command."""
