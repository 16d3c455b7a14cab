package main

const setns = 308
