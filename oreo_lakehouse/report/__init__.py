"""What people see: `console` for the terminal, `plot` for pictures."""
