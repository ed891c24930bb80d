import { expect } from 'vitest'
import { definitionArchive, type ArchiveWish } from './definition-archives.ts'
import type { TestEdge } from './test-edge.ts'
import { form, type Part } from './upload-server.ts'

export const uploadPath = '/v1/edge-mgmt/edgehosts/current/actions/upload-clusterconfig'
export const validatePath = '/v1/edge-mgmt/cluster/profiles/variables/validate'

/** Sends a file as `factory.tgz`, followed by more parts. */
export async function uploadFile(edge: TestEdge, token: string, content: Buffer, ...more: Part[]) {
  const { type, body } = form({ name: 'uploadFile', fileName: 'factory.tgz', content }, ...more)
  const headers = { authorization: token, 'content-type': type }
  return edge.app.inject({ method: 'POST', url: uploadPath, payload: body, headers })
}

/** Sends a definition, which has to be accepted. */
export async function uploadDefinition(edge: TestEdge, token: string, wish: ArchiveWish = {}) {
  const reply = await uploadFile(edge, token, definitionArchive(wish))
  expect(reply.statusCode, reply.body).toBe(201)
  return reply.json<{ uid: string; uploadPath: string; message: string }>()
}
