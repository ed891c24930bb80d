import { Type, type Static } from 'typebox'
import { strict } from '../config/schema-parts.ts'

/** Uploads to this host. */
export const Content = Type.Object(
  {
    signing: Type.Object(
      {
        publicKey: Type.Object(
          {
            base64EncodedValue: Type.String({
              maxLength: 65_536,
              default: '',
              description:
                'Base64 of a public key, PEM, RSA or EC. If set, every upload needs a detached signature, SHA-256, made with its private key.',
            }),
            description: Type.String({ maxLength: 1_024, default: '', description: 'Whose key it is.' }),
          },
          strict,
        ),
      },
      strict,
    ),
  },
  strict,
)

/** The settings of uploads; the section `content`. */
export type ContentSettings = Static<typeof Content>
