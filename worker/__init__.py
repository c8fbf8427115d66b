"""The process: `python -m worker` reads the environment and wires everything."""
