import { expect, it } from 'vitest'
import { readDefinition } from '../../../src/definition/read/read-definition.ts'

it('a profile that is too large is not missing too', async () => {
  const name = 'profiles/a/profile.json'
  const head = {
    ...{ formatVersion: 1, name: 'a', version: '1.0.0', description: '', sums: new Map([[name, '']]) },
    profiles: [{ uid: 'a', name: 'a', version: '1.0.0' }],
  }
  const members = new Map([[name, { sizeBytes: 11 }]])
  const { problems } = await readDefinition(
    { head, members, content: async () => Buffer.from('12345678901') },
    { textBytes: 10 },
  )
  expect(problems.map(({ code, place }) => [code, place])).toEqual([['MemberTooLarge', name]])
})
