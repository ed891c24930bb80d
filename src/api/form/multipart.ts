import multipart from '@fastify/multipart'
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'

const options = {
  limits: {
    // Fields and files together.
    parts: 32,
    files: 32,
    headerPairs: 64,
    // Not the JSON limit of the server; whoever reads the file bounds it, and form-parts.ts the rest.
    fileSize: Number.POSITIVE_INFINITY,
  },
  throwFileSizeLimit: false,
  // The library would collect a field in memory and decode it as text, which a binary signature does not survive.
  isPartAFile: () => true,
}

/**
 * Adds routes that take `multipart/form-data` and nothing else. Every other route of the app keeps answering 415 to it.
 * @param addRoutes the plugin with these routes; each reads its parts with `formParts`
 */
export async function addMultipart(app: FastifyInstance, addRoutes: FastifyPluginAsync): Promise<void> {
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    await scope.register(multipart, options)
    await scope.register(addRoutes)
  })
}
