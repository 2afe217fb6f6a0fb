"""Packs: reports as `.sql` files with a header, those of the package and the user's own, and their shared options."""
