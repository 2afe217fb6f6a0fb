"""Packs: one question, one `.sql` file with a header. The package's, the user's own, and what all of them may take."""
