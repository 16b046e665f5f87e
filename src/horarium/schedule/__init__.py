"""What: the values a schedule is made of, and the rules that each value keeps by itself."""
