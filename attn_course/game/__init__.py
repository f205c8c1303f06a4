"""Break the machine, and equations that are alive: what is counted in JavaScript, how it is held to NumPy, and what shows it."""
