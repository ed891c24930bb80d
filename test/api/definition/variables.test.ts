import { describe, expect, it } from 'vitest'
import type { ArchiveWish } from '../../support/definition-archives.ts'
import { uploadDefinition, validatePath } from '../../support/definition-upload.ts'
import { createTestEdge, useOneEdge, type ErrorReply, type TestEdge } from '../../support/test-edge.ts'

let edge: TestEdge
let token: string
const use = async (made: TestEdge) => {
  edge = made
  token = (await edge.login('alice')).access
}

const uploaded = (wish?: ArchiveWish) => uploadDefinition(edge, token, wish)

const validate = async (archiveUploadPath: unknown, given?: unknown) =>
  edge.post(validatePath, { archiveUploadPath, variables: given }, { headers: { authorization: token } })

describe('validation of variables', () => {
  useOneEdge(use)

  const variables = [
    { name: 'size', format: 'number', required: true },
    { name: 'pw', isSensitive: true, defaultValue: 'hunter2', regex: '^[a-z0-9]+$' },
  ]
  const values = 'pw: "{{ .spectro.var.pw }}"\nsize: {{ .spectro.var.size }}\n'
  it('a validation is a 200 with a reason for each invalid value', async () => {
    const { uploadPath: handle } = await uploaded({ variables, values })
    const reply = await validate(handle, [
      { name: 'size', profileUid: 'u1', value: 'three' },
      { name: 'sise', value: '3' },
    ])
    expect(reply.statusCode).toBe(200)
    const { variables: judged } = reply.json<{ variables: Record<string, unknown>[] }>()
    expect(judged).toMatchObject([
      { name: 'size', profileUid: 'u1', profileName: 'profile u1', isValid: false },
      { name: 'sise', isValid: false, validationFailureReason: 'sise is not declared; did you mean size?' },
      { name: 'pw', isValid: true, regex: '^[a-z0-9]+$', validationFailureReason: '' },
    ])
    expect(reply.body).not.toContain('hunter2')
  })

  it('a validation accepts the handle of an upload, and the path of its slot', async () => {
    const { uploadPath: handle, uid } = await uploaded({ variables, values })
    for (const path of [handle, handle.replace(uid, 'overridden')])
      expect((await validate(path, [{ name: 'size', value: '3' }])).json()).toMatchObject({
        variables: [{ isValid: true }, { isValid: true }],
      })
  })

  it('a validation without a handle is of the definition that comes next, and a value without a name is not valid', async () => {
    await uploaded({ variables, values })
    const judged = (await validate(undefined, [{ value: '3' }, { name: 'size', value: '3' }])).json()
    const validationFailureReason = 'this value names no variable'
    expect(judged).toMatchObject({
      variables: [
        { name: '', isValid: false, validationFailureReason },
        { name: 'size', isValid: true },
        { name: 'pw', isValid: true },
      ],
    })
    expect((await validate('')).statusCode).toBe(200)
  })

  it.each([
    ['/etc/passwd'],
    ['overridden'],
    ['../definitions/overridden'],
    ['/nowhere/definitions/overridden'],
    ['\0'],
    ['x'.repeat(300)],
  ])('a validation refuses the unknown handle %j', async (path) => {
    await uploaded({ variables, values })
    const reply = await validate(path)
    expect(reply.statusCode).toBe(400)
    expect(reply.json<ErrorReply>()).toMatchObject({
      code: 'BadRequest',
      details: { field: 'archiveUploadPath' },
    })
  })

  it('a validation refuses the handle of a replaced upload', async () => {
    const { uploadPath: old } = await uploaded({ variables, values })
    await uploaded({ version: '2.0.0' })
    expect((await validate(old)).statusCode).toBe(400)
  })

  it('a validation is refused on a connected host', async () => {
    const connected = await createTestEdge({ mode: 'connected' })
    const { access } = await connected.login('alice')
    const reply = await connected.post(
      validatePath,
      { archiveUploadPath: 'x' },
      { headers: { authorization: access } },
    )
    expect(reply.json<ErrorReply>().code).toBe('ManagedByPlatform')
    await connected.stop()
  })
})

describe('where there is no definition', () => {
  useOneEdge(use)

  it.each([[undefined], [''], [7], [null]])(
    'a validation refuses the malformed handle %j and names the field',
    async (path) => {
      const reply = await validate(path)
      expect(reply.statusCode).toBe(400)
      expect(reply.json<ErrorReply>().message).toContain('archiveUploadPath')
    },
  )
})
