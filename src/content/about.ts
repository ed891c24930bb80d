import type { Declaration } from '../room.ts'
import { uploadErrors } from '../upload/codes.ts'
import { contentErrors } from './codes.ts'
import { Content } from './config.ts'
import { bundleErrors } from './format/codes.ts'

/** Content of this host: bundles of images, charts, programs and files, and the rules for all uploads. */
export const about = {
  errors: { ...uploadErrors, ...bundleErrors, ...contentErrors },
  config: { content: Content },
  checkReferencedFiles: async (check) => (await import('./check-signing-key.ts')).checkSigningKey(check),
  tags: { content: 'What is uploaded to this host.' },
  limited: ['content'],
} as const satisfies Declaration
