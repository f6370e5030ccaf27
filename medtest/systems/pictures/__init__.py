"""Systems that draw what a prompt says: services over an API, a pipeline in a folder, pictures that are finished."""
