"""OReO for lakehouses: decides online when to change a table's layout, and to which one, and commits it safely."""
