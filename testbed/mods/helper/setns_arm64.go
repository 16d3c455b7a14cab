package main

const setns = 268
