"""HTTP exchanges and WebSockets: limits, decoding, answers."""
