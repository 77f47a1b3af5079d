"""Text as data, and the languages that it is read in: needed by all parts of the hub, needs none of them.

`message` has what is stored and sent; `catalogue` the languages; `render` makes text for one reader, at the edge.
"""
