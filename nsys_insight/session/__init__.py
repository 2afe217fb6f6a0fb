"""An open trace: a locked connection over one file or several, and the answers of reports and queries."""
