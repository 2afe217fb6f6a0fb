"""SQL as text: quoting, file headers, parameters, statements, and the names that a query reads."""
