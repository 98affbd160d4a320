"""What an SOP is: handbooks, compiled programs, the compiler between them and the text a
model sees of either. Pure: no file, socket or clock.
"""
