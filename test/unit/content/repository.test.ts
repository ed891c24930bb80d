import { expect, it } from 'vitest'
import { parseRepository } from '../../../src/content/registry/repository.ts'

it.each([
  ['library/busybox', 'docker.io', 'docker.io/library/busybox'],
  ['app', 'registry.example:5000', 'registry.example:5000/app'],
  ['docker.io/library/busybox', undefined, 'docker.io/library/busybox'],
  ['registry.example_5000/team/app', undefined, 'registry.example:5000/team/app'],
  ['localhost_5000/app', undefined, 'localhost:5000/app'],
  ['library/busybox', undefined, 'docker.io/library/busybox'],
  ['team_5/app_6', undefined, 'team:5/app_6'],
])('the repository %s, of the host %s, is first looked for as %s', (name, ns, first) => {
  expect(parseRepository(name, ns)?.names[0]).toBe(first)
})

it('a path that may have a port is looked for without one too', () => {
  expect(parseRepository('team_5/app', undefined)?.names).toEqual(['team:5/app', 'docker.io/team_5/app'])
})
