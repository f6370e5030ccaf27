"""Tables of attacks, and checks on the attacks themselves: pure functions of records with crafted follow-ups."""
