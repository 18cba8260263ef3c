"""Lines as people have them: recordings of links as experiments, and advice for a line at home."""
