import multipart from '@fastify/multipart'
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { Type } from 'typebox'

const options = {
  limits: {
    // Fields and files together.
    parts: 32,
    files: 32,
    headerPairs: 64,
    // Not the JSON limit of the server; the reader of the file limits its size, and form-parts.ts limits the rest.
    fileSize: Number.POSITIVE_INFINITY,
  },
  throwFileSizeLimit: false,
  // The library would collect a field in memory and decode it as text, which a binary signature does not survive.
  isPartAFile: () => true,
}

/**
 * Adds routes that accept only `multipart/form-data`. Every other route of the app still answers 415 to it.
 * @param addRoutes the plugin with these routes; each one reads its parts with `formParts`
 */
export async function addMultipart(app: FastifyInstance, addRoutes: FastifyPluginAsync): Promise<void> {
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    // The schema of a form is only for the API document; the reader of the parts validates them.
    scope.setValidatorCompiler(() => () => true)
    await scope.register(multipart, options)
    await scope.register(addRoutes)
  })
}

/** The schema of a form for the API document: its parts, each with a description. */
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
