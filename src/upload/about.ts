import type { Declaration, Ground } from '../room.ts'
import { uploadErrors } from './codes.ts'
import { Content, type ContentSettings } from './config.ts'

/** Uploads to this host. */
export const about = {
  create: async (ground: Ground<{ content: ContentSettings }>) =>
    (await import('./room.ts')).createUploadRoom(ground),
  errors: uploadErrors,
  config: { content: Content },
  checkReferencedFiles: async (check) => (await import('./check-signing-key.ts')).checkSigningKey(check),
  tags: { content: 'What is uploaded to this host.' },
  limited: ['content'],
} as const satisfies Declaration
