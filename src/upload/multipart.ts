import multipart from '@fastify/multipart'
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { Type } from 'typebox'

const options = {
  limits: {
    // Fields and files together.
    parts: 32,
    files: 32,
    headerPairs: 64,
    // Not the JSON limit of the server; the reader of the file bounds it, and form-parts.ts the rest.
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
    // The schema of a form is there for the document; the reader of the parts checks them.
    scope.setValidatorCompiler(() => () => true)
    await scope.register(multipart, options)
    await scope.register(addRoutes)
  })
}

/** What the API document says of a form, for the schema of a route: its parts, each with what it is. */
export const formSchema = (parts: Readonly<Record<string, string>>, required: readonly string[]) => ({
  consumes: ['multipart/form-data'],
  body: {
    ...Type.Object(
      Object.fromEntries(
        Object.entries(parts).map(([name, description]) => [
          name,
          Type.Unsafe({ type: 'string', format: 'binary', description }),
        ]),
      ),
    ),
    required: [...required],
  },
})
