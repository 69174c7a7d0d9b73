// Package pkg holds no code: its test keeps the rules of who may import whom.
package pkg
