"""The vocabulary: values that every layer speaks in. Imports nothing from the layers above."""
