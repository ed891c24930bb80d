import { expect, it } from 'vitest'
import { parseRepository } from '../../../src/content/registry/pull-index.ts'

it.each([
  ['library/busybox', 'docker.io', 'docker.io/library/busybox'],
  ['busybox', 'docker.io', 'docker.io/library/busybox'],
  ['library/busybox', 'index.docker.io', 'docker.io/library/busybox'],
  ['tools/app', 'Registry.Example', 'registry.example/tools/app'],
  ['app', 'registry.example:5000', 'registry.example:5000/app'],
  ['app', 'localhost', 'localhost/app'],
  ['pause', 'registry.k8s.io', 'registry.k8s.io/pause'],
])('%s?ns=%s means the image of that host alone', (name, ns, whole) => {
  expect(parseRepository(name, ns)).toEqual({ names: [whole] })
})

it.each([
  ['docker.io/library/busybox', ['docker.io/library/busybox', 'docker.io/docker.io/library/busybox']],
  ['docker.io/busybox', ['docker.io/library/busybox', 'docker.io/docker.io/busybox']],
  ['localhost/app', ['localhost/app', 'docker.io/localhost/app']],
  [
    'registry.example_5000/team/app',
    ['registry.example:5000/team/app', 'docker.io/registry.example_5000/team/app'],
  ],
  ['localhost_5000/app', ['localhost:5000/app', 'docker.io/localhost_5000/app']],
  ['team_5/app_6', ['team:5/app_6', 'docker.io/team_5/app_6']],
  ['library/busybox', ['docker.io/library/busybox']],
  ['busybox', ['docker.io/library/busybox']],
])('%s is looked for as a whole name first, then without its host', (name, names) => {
  const found = parseRepository(name, undefined)
  expect(found?.names.slice(0, names.length)).toEqual(names)
  expect(found).toMatchObject({ path: name, title: name })
  expect(parseRepository(name, '')).toEqual(found)
})

it('a host with a port is part of a whole name only', () => {
  expect(parseRepository('registry.example:5000/tools/app', undefined)).toEqual({
    names: ['registry.example:5000/tools/app'],
  })
})

it.each([
  ...['', '/', 'a//b', 'A', 'a/../b', '..', 'a:b', 'a@sha256:0', 'a b', 'ä', 'a\0', '-a'],
  `${'a/'.repeat(300)}a`,
])('%j is no name', (name) => {
  expect(parseRepository(name, undefined)).toBeUndefined()
  expect(parseRepository(name, 'docker.io')).toBeUndefined()
})

it.each(['a/b', '..', 'a b', 'team', 'docker.io/library', `${'a'.repeat(300)}.example`])(
  'ns=%s is no host, so no image is meant',
  (ns) => {
    expect(parseRepository('busybox', ns)).toBeUndefined()
  },
)
