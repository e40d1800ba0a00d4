"""Our models under the interfaces of other libraries, one module per library; each needs the extra of its name."""
