"""What bounds a run and what to do first: findings computed from the answers of reports, ranked, and written out."""
