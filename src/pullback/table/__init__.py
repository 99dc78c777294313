"""How an operation is entered in the table and called. No operation is defined here."""
