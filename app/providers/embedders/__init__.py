"""Embedders: texts to vectors, by an ONNX model on this machine or by a server."""
