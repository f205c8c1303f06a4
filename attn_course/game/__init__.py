"""Break the machine: what is counted in JavaScript, how it is held to NumPy, and the card and the page that show it."""
