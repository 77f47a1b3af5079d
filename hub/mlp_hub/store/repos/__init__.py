"""One repository per kind of row; each works inside the transaction of the `Tx` that made it."""
