"""State and ranking: records in, views out."""
