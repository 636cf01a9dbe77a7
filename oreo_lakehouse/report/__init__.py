"""What people see: `console`, `standing` and `telling` in the terminal, `plot` and `page` as pictures."""
