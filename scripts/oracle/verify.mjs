// Verifies each witness of a directory with sigstore-js and compares the answers.
import { createHash, createPublicKey } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundleFromJSON } from '@sigstore/bundle';
import { TrustedRoot } from '@sigstore/protobuf-specs';
import { toSignedEntity, toTrustMaterial, Verifier } from '@sigstore/verify';

// What a profile has to prove: promises of certificate logs, log entries, times.
const profiles = {
  'public-good': { ctlogThreshold: 1, tlogThreshold: 1, timestampThreshold: 1 },
  private: { ctlogThreshold: 0, tlogThreshold: 1, timestampThreshold: 1 },
  github: { ctlogThreshold: 0, tlogThreshold: 0, timestampThreshold: 1 },
};

// Where the two differ for a reason, by name of the witness.
const differences = new Map([
  ['TestRefused/proof_flipped', 'sigstore-js takes the root hash of the checkpoint and does not look at that of the proof'],
  ['TestRefused/version_0.4', 'sigstore-js reads versions that do not exist yet'],
  ['TestRefused/unknown_field', 'sigstore-js leaves out what it does not know'],
  ['TestVerified/a_clock_beside_the_log', 'the log proves the time; a timestamp of an authority that the root does not know adds nothing'],
]);

const exact = (text) => `^${text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')}$`;

function verify(w) {
  const artifact = Buffer.from(w.artifact, 'base64');
  const bundle = bundleFromJSON(JSON.parse(Buffer.from(w.bundle, 'base64').toString('utf8')));
  const key = w.key && createPublicKey(w.key);
  const material = toTrustMaterial(TrustedRoot.fromJSON(w.root), () => {
    if (!key) throw new Error('no key');
    return { publicKey: key, validFor: () => true };
  });
  const thresholds = key && !w.logged ? { ctlogThreshold: 0, tlogThreshold: 0, timestampThreshold: 0 } : profiles[w.profile];
  const policy = w.identity && { subjectAlternativeName: exact(w.identity), extensions: { issuer: w.issuer } };
  new Verifier(material, thresholds).verify(toSignedEntity(bundle, artifact), policy || undefined);
  if (bundle.content.$case === 'dsseEnvelope') {
    // sigstore-js leaves it to its caller what the statement is about.
    const statement = JSON.parse(Buffer.from(bundle.content.dsseEnvelope.payload).toString('utf8'));
    const digest = createHash('sha256').update(artifact).digest('hex');
    if (!statement.subject.some((s) => s.digest.sha256 === digest)) throw new Error('another subject');
  }
}

const counts = { accepted: 0, refused: 0, stated: 0, wrong: 0 };
for (const file of readdirSync(process.argv[2])) {
  const w = JSON.parse(readFileSync(join(process.argv[2], file), 'utf8'));
  let why = '';
  try {
    verify(w);
  } catch (err) {
    why = err.message || String(err);
  }
  if (w.good === (why === '')) {
    counts[w.good ? 'accepted' : 'refused']++;
  } else if (differences.delete(w.name)) {
    counts.stated++;
  } else {
    counts.wrong++;
    console.log(`${w.name}: we ${w.good ? 'accept' : 'refuse'} it, sigstore-js ${why ? `says: ${why}` : 'accepts it'}`);
  }
}
console.log(`sigstore-js: ${counts.accepted} accepted alike, ${counts.refused} refused alike, ${counts.stated} different for a stated reason, ${counts.wrong} for none`);
for (const name of differences.keys()) console.log(`${name}: there is no such difference`);
process.exitCode = counts.wrong || differences.size || !counts.accepted || !counts.refused ? 1 : 0;
