import { expect, it } from 'vitest'
import { declarations } from '../../src/edgehostd/declarations.ts'
import { defineErrors } from '../../src/errors/define-errors.ts'
import type { Declaration } from '../../src/root/room.ts'
import { sumDeclarations } from '../../src/root/declarations.ts'

const errors = defineErrors({ TooCold: { status: 503, meaning: 'It is too cold.', action: 'Wait.' } })

it.each<[string, Declaration, string]>([
  ['an error', { errors }, 'error TooCold'],
  ['a metric', { families: { edgehostd_x: { type: 'gauge', help: 'X.' } } }, 'metric edgehostd_x'],
  ['a resource', { limited: ['x'] }, 'resource x'],
  ['a tag', { tags: { x: 'X.' } }, 'tag x'],
  ['a file of the support archive', { support: [{ name: 'x.json', path: '/x' }] }, 'support file x.json'],
])('%s that two rooms declare is refused', (_what, declaration, named) => {
  expect(() => sumDeclarations([declaration, {}])).not.toThrow()
  expect(() => sumDeclarations([declaration, {}, declaration])).toThrow(`${named} is declared twice`)
})

it('a section of the configuration that two rooms declare is refused', () => {
  const config = declarations.find((each) => each.config)!.config!
  expect(() => sumDeclarations([{ config }, { config }])).toThrow(/^section \w+ is declared twice/)
})
