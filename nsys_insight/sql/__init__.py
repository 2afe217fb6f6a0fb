"""SQL as text: quoting, headers of files, parameters, statements, and which names a query reads."""
