"""Importers of coding agents, which keep sessions as logs or in databases of their own."""
