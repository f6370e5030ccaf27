"""Singular and plural of English nouns, with irregular words."""

from __future__ import annotations

from functools import cache


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


IRREGULAR: dict[str, str] = {
    "calf": "calves",
    "child": "children",
    "die": "dice",
    "elf": "elves",
    "foot": "feet",
    "goose": "geese",
    "half": "halves",
    "hoof": "hooves",
    "knife": "knives",
    "leaf": "leaves",
    "life": "lives",
    "loaf": "loaves",
    "man": "men",
    "mouse": "mice",
    "ox": "oxen",
    "person": "people",
    "scarf": "scarves",
    "self": "selves",
    "shelf": "shelves",
    "thief": "thieves",
    "tooth": "teeth",
    "wife": "wives",
    "wolf": "wolves",
    "woman": "women",
    "bikini": "bikinis",
    "broccoli": "broccolis",
    "cactus": "cacti",
    "kiwi": "kiwis",
    "panini": "paninis",
    "ski": "skis",
    "taxi": "taxis",
    "octopus": "octopuses",
}
"""Irregular plurals by singular; they also apply to the last part of compounds (``policeman``)."""
_COMPOUNDING = frozenset(("man", "woman", "child", "person", "foot", "knife", "shelf", "tooth", "wife", "life"))
SAME = _words("""
    aircraft bison buffalo deer fish hovercraft moose offspring salmon series sheep shrimp spacecraft species
    trout watercraft
""")
"""Words whose plural equals the singular."""
PLURAL_ONLY = _words("""
    belongings binoculars clothes earphones eyeglasses goggles groceries headphones jeans khakis leggings
    outskirts overalls pajamas pants pliers pyjamas remains scissors shades shorts slacks spectacles stairs
    sunglasses surroundings suspenders sweatpants sweats tights tongs trousers tweezers utensils woods
""")
"""Words without a singular."""
_MEN = _words("abdomen acumen albumen cyclamen hymen lumen omen ramen regimen semen specimen stamen yemen")
"""Singulars in -men."""
_ENDS_IN_S = _words("""
    abs abyss access actress address albatross asbestos asparagus atlas bass bias bliss bonus boss brass bus
    business bypass cactus campus canvas census chess chorus christmas circus citrus class compass cosmos crocus
    cross cutlass dais darkness debris discus dress eucalyptus express eyeglass fitness floss focus fortress gas
    genius glass gloss grass guess harness hibiscus hippopotamus hiss hostess hourglass hummus illness iris kiss
    lens lettuce loss lotus mathematics mattress means mess minus mistress moss news oasis octopus overpass
    pancreas papyrus paris pelvis plus press princes princess process radius rhinoceros series species status
    stylus success surplus sushis swiss tennis texas toss trellis tv's underpass vegas virus waitress walrus
    wetness wilderness wineglass witness
""")
_ES = ("ses", "xes", "zes", "ches", "shes", "sses")
_IE = _words("""
    beanie birdie bootie bowtie brownie budgie calorie collie cookie cutie doggie eerie foodie genie goalie hippie
    hoodie kiddie magpie movie necktie pie pinkie pixie prairie quickie rookie selfie smoothie sortie sweetie
    talkie tie veggie walkie wheelie zombie zookie
""")
_OES = _words("tomato potato hero echo mango volcano tornado mosquito cargo domino buffalo")
_SE = _words("""
    base birdhouse blouse bookcase briefcase bruise caboose case cause chaise chase cheese clause close clubhouse
    collapse corpse course courthouse crease crevasse cruise curse database disguise doghouse dose eclipse ellipse
    enclosure excuse exercise expanse farmhouse finesse franchise fuse geese glimpse goose grease greenhouse
    hearse horse hose house impasse increase lacrosse lease license lighthouse merchandise moose mouse muse noise
    noose nose nurse pause phase phrase pillowcase pose posse praise premise promise pulse purchase purse
    racehorse raise release response reverse rose seahorse sense showcase spouse staircase suitcase sunrise
    surface tease tortoise turquoise universe use valise vase verse vise warehouse wise
""")
_ZE = _words("prize maze size bronze breeze glaze gaze blaze trapeze haze")
_CHE = _words("ache headache niche quiche toothache cache avalanche mustache moustache brioche")
_XE = _words("axe pickaxe deluxe")


@cache
def plural(noun: str) -> str:
    """Return the plural of a noun; of several words, that of the last (``fire hydrants``)."""
    head, _, last = noun.rpartition(" ")
    return f"{head} {_plural(last)}" if head else _plural(last)


def _plural(word: str) -> str:
    if word in SAME or word in PLURAL_ONLY:
        return word
    if word in IRREGULAR:
        return IRREGULAR[word]
    for ending in _COMPOUNDING:
        if word.endswith(ending) and word not in ("human", "german", "roman", "shaman", "talisman"):
            return word[: -len(ending)] + IRREGULAR[ending]
    if word.endswith(("s", "x", "z", "ch", "sh")) or word in _OES:
        return word + "es"
    if word.endswith("y") and len(word) > 1 and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


_BACK = {many: base for base, many in IRREGULAR.items()}


@cache
def singular(noun: str) -> str:
    """Return the singular of a noun; a singular is returned unchanged."""
    if noun in ("swim trunks", "swimming trunks"):
        return noun
    head, _, last = noun.rpartition(" ")
    return f"{head} {_singular(last)}" if head else _singular(last)


def _singular(word: str) -> str:
    if word in SAME or word in PLURAL_ONLY or word in _ENDS_IN_S or len(word) < 3:
        return word
    if word in _BACK:
        return _BACK[word]
    for ending in _COMPOUNDING:
        if word.endswith(IRREGULAR[ending]) and word not in _MEN:
            return word[: -len(IRREGULAR[ending])] + ending
    if not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-1] if word[:-1] in _IE else word[:-3] + "y"
    if word.endswith("oes") and word[:-2] in _OES:
        return word[:-2]
    stem = word[:-1]
    if word.endswith(_ES):
        keeps_e = stem in _SE or stem in _ZE or stem in _CHE or stem in _XE or _ends_with_e(stem)
        return stem if keeps_e else word[:-2]
    return stem


def _ends_with_e(stem: str) -> bool:
    """Return True if a word that ends in -se, -ze, -che keeps its e: compounds of words that do."""
    return any(
        stem.endswith(ending) for ending in ("house", "horse", "case", "nose", "rose", "vase", "cheese", "tease")
    )


def is_plural(word: str) -> bool:
    """Return True if a noun is a plural with a singular."""
    return singular(word) != word


@cache
def article(word: str) -> str:
    """Return ``a`` or ``an`` before a word, by its sound as far as its spelling shows it."""
    first = word.split(" ")[0].lower()
    if first.startswith(("uni", "use", "uti", "uten", "euro", "ewe", "one", "once", "u.s", "ufo", "ukulele")):
        return "an" if first.startswith(("unin", "unim")) else "a"
    if first.startswith(("hour", "honest", "honor", "heir", "8", "11", "18", "x-", "mp3")):
        return "an"
    return "an" if first[:1] in "aeiou" else "a"
