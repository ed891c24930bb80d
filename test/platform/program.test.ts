import { expect, it } from 'vitest'
import { program } from '../../src/base/program.ts'
import { toKey } from '../../src/config/key.ts'

it('gives the shared rooms the names of the platform', () => {
  expect(program).toMatchObject({ daemon: 'edgeplatformd', folder: 'edgeplatform', port: 443 })
  expect(toKey(['api', 'port'], { type: 'integer' }).environment).toBe('EDGEPLATFORMD_API_PORT')
})
