"""Support for notebooks and editors: answers and diagnoses as HTML, pictures as SVG, reports as documented methods."""
