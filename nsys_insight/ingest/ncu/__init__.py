"""Data of Nsight Compute: its CSV pages and reports, and the file that they are imported into."""
