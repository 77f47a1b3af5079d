"""Routes of accounts: people, sessions, tokens and notices."""
