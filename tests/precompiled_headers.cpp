// Gives CMake a source of the target whose precompiled headers all test programs share.
