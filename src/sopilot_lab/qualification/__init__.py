"""Does this model qualify for paging?"""
