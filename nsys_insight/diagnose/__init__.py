"""What bounds a run and what to do first: findings over the answers of reports, ranked, and written out."""
