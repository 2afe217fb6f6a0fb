"""What notebooks and editors show: answers and diagnoses as HTML, pictures as SVG, reports as documented methods."""
