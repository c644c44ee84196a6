"""The four evaluation sets: contrast, conflicts, statements, dialogues."""
